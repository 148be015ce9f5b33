//! Sets the link flags of a Node addon when the bindings are built.
fn main() {
    if std::env::var_os("CARGO_FEATURE_NODE").is_some() {
        napi_build::setup();
    }
}
