"""Groups: each kept page with its copies, and which of them stands for the group."""
