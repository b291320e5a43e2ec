// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The settings of both sides.

use kit_process::{ALPN, Cipher, Doing, Failure, IDLE, StackOptions, WINDOW_BYTES};
use quiche::{Config, PROTOCOL_VERSION};

/// The settings of both sides. BoringSSL chooses the cipher suite by itself: AES-128-GCM where the
/// processor has instructions for it.
pub(crate) fn config(options: &StackOptions) -> Result<Config, Failure> {
    if options.cipher != Cipher::Aes128 {
        return Err(Failure::new("quiche's cipher suite cannot be chosen"));
    }
    let mut config = Config::new(PROTOCOL_VERSION).doing("configuring quiche")?;
    config.set_application_protos(&[ALPN]).doing("naming the protocol")?;
    let window = u64::from(WINDOW_BYTES);
    config.set_initial_max_data(window);
    config.set_initial_max_stream_data_bidi_local(window);
    config.set_initial_max_stream_data_bidi_remote(window);
    config.set_max_connection_window(window);
    config.set_max_stream_window(window);
    config.set_initial_max_streams_bidi(STREAMS);
    config.set_max_idle_timeout(IDLE.as_millis() as u64);
    let datagram = usize::from(options.datagram);
    config.set_max_recv_udp_payload_size(datagram.max(RECEIVED_MAX));
    config.set_max_send_udp_payload_size(datagram);
    Ok(config)
}

const STREAMS: u64 = 100;
const RECEIVED_MAX: usize = 1_500;
