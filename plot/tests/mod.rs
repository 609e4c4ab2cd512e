//! Tests of pictures and tables.

mod writing;
