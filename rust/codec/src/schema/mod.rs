//! Message shapes by version.
