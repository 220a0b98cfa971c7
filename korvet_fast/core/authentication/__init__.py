"""Who a client is: SASL's mechanisms, and the credentials they are checked against."""
