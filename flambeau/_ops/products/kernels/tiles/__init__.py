"""A file for each kind of register tile: MR rows by NR columns of sums, over panels of `groups`."""
