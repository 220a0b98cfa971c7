"""How fast it is: loads, peers to compare with, and what came out. Not part of the product."""
