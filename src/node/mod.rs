//! The napi bindings, and nothing else: convert, call, settle.
