"""One file per Kafka API; each opens with its key, its versions and the parts left out."""
