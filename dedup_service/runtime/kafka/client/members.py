"""Static members leave a group only when somebody says so: the client library never does (KIP-345)."""

import logging

from kafka import KafkaAdminClient
from kafka.admin import MemberToRemove

from dedup_service.core.errors import TwinsieveError
from dedup_service.runtime.kafka.client.connecting import connect
from dedup_service.runtime.kafka.client.settings import Connection
from dedup_service.runtime.kafka.client.translated import PASSING

__all__ = ["leave_group"]

_LOG = logging.getLogger(__name__)


def leave_group(connection: Connection, group: str, instance: str) -> None:
    """Take the member out of the group, so that its partitions move at once; a session's end does the same later."""
    try:
        client = connect(KafkaAdminClient, connection)
        try:
            client.remove_group_members(group, [MemberToRemove(group_instance_id=instance)])
        finally:
            client.close()
    except (*PASSING, TwinsieveError) as error:
        _LOG.warning("group %s: %s leaves when its session ends, as nobody could be told: %s", group, instance, error)
