"""One file per request of a peer: translate, call core, translate back."""
