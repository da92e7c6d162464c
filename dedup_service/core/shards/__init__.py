"""One index in several processes: shards that hold entries and find candidates, and a resolver that decides.

Every process reads the same log. A page belongs to the slot of its ordinal modulo the number of slots, and shard I of S
holds the entries of the slots v with v % S == I - 1 (`Shard`). For each message of the log, a shard answers what its
entries have to say of the pages in it (`MessageAnswer`). The resolver is a decider whose `Candidates` are the window,
which it has itself, and the answers of all shards (`ShardCandidates`). What it decides goes back to the shards as one
`MessageOutcome` for each message.

The tables of a shard change by outcomes alone, exactly `window` pages behind the log. So answers are a function of the
log, and the same with any number of shards, however far each of them is ahead of the others.
"""
