//! Tests of the compiler messages for wrong uses of the SDK. Each file in `wrong/` is one wrong use, and the `.stderr` file beside it has
//! the message.
//!
//! After a change of toolchain or message, `TRYBUILD=overwrite` writes the messages anew. Read them before you commit.

#[test]
fn wrong_use_is_explained() {
    trybuild::TestCases::new().compile_fail("tests/wrong/*.rs");
}
