"""The door to the brokers: every client that survives, under the names that the steps use.

Only this package (and the publisher of the Scrapy face) imports the client library; the rest of the
project imports from here.
"""

from kafka.consumer.fetcher import ConsumerRecord
from kafka.structs import ConsumerGroupMetadata, TopicPartition

from dedup_service.runtime.kafka.client.appender import append
from dedup_service.runtime.kafka.client.group_reader import GroupReader
from dedup_service.runtime.kafka.client.log_reader import LogReader
from dedup_service.runtime.kafka.client.messages import Message
from dedup_service.runtime.kafka.client.publisher import Publisher
from dedup_service.runtime.kafka.client.settings import Connection
from dedup_service.runtime.kafka.client.transactions import Transactions

__all__ = [
    "Connection",
    "ConsumerGroupMetadata",
    "ConsumerRecord",
    "GroupReader",
    "LogReader",
    "Message",
    "Publisher",
    "TopicPartition",
    "Transactions",
    "append",
]
