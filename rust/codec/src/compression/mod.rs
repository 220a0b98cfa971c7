//! The five compressions, bounded in what they give out.
