"""ACLs: who may do what to which resource, as Kafka's StandardAuthorizer decides it."""
