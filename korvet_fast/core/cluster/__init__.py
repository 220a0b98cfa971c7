"""Several brokers over one store: who is there, who leads which partition, and who takes over when one is gone."""
