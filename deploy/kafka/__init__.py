"""A real Apache Kafka to test and try with: one or three KRaft nodes, gone when you are.

>>> with Cluster(brokers=3) as cluster:                     # doctest: +SKIP
...     run_something_against(cluster.bootstrap)
...     cluster.kill(0)                                     # SIGKILL; start(0) brings it back with its data
"""

from deploy.kafka.cluster import Cluster
from deploy.kafka.errors import ClusterError

__all__ = ["Cluster", "ClusterError"]
