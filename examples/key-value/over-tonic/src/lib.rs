// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The types and the service of `proto/kv.proto`.

tonic::include_proto!("kv");
