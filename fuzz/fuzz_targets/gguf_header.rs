#![no_main]

#[allow(dead_code)]
#[path = "../bodies.rs"]
mod bodies;
#[path = "../../tests/it/memory.rs"]
mod memory;

libfuzzer_sys::fuzz_target!(|data: &[u8]| bodies::gguf_header(data));
