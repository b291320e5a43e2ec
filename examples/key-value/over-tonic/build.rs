// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Makes the types of `proto/kv.proto`, without `protoc`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files = protox::compile(["proto/kv.proto"], ["proto"])?;
    tonic_prost_build::configure().bytes(".").compile_fds(files)?;
    Ok(())
}
