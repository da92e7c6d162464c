"""A real Apache Kafka for tests and trials: KRaft nodes that end with the process that started them.

>>> with Cluster(brokers=3) as cluster:                     # doctest: +SKIP
...     run_something_against(cluster.bootstrap)
...     cluster.kill(0)                                     # SIGKILL; start(0) brings it back with its data
"""

from deploy.kafka.cluster import Cluster
from deploy.kafka.errors import ClusterError

__all__ = ["Cluster", "ClusterError"]
