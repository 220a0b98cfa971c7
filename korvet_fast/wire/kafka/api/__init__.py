"""One file per Kafka API; each opens with its key, its versions and what it leaves out."""
