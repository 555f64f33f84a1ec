//! Tests of the whole way from a message to its meaning.

mod corpus;
mod families;
mod given;
mod laws;
