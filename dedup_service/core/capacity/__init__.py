"""Capacity planning: machines, memory, disk, broker traffic and restore times of an index over many machines."""
