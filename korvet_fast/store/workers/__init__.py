"""Several workers over one directory of files: each log has one owner at a time, and one worker serves the keys."""
