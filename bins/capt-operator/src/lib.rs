//! Lib.
