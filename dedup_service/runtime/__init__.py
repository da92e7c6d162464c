"""Everything with I/O around the pure core: disks, processes, brokers, clocks."""
