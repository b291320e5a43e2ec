// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The key-value client over gRPC.

use std::error::Error;
use std::time::{Duration, Instant};

use bytes::Bytes;
use common::{ClientArguments, Failure, Parser, Refusal, Storage, Store};
use kv_tonic::key_value_client::KeyValueClient;
use kv_tonic::{DeleteRequest, GetRequest, ListRequest, SetRequest};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, ConnectError, Request, Response, Status};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments = ClientArguments::parse();
    let endpoint = Endpoint::from_shared(format!("https://{}", arguments.server))?
        .tls_config(tls(&arguments)?)?
        .http2_keep_alive_interval(Duration::from_millis(500))
        .keep_alive_timeout(Duration::from_secs(2));
    let client = KeyValueClient::new(endpoint.connect_lazy())
        .max_decoding_message_size(Storage::MESSAGE_MAX)
        .max_encoding_message_size(Storage::MESSAGE_MAX);
    let store = TonicStore { client, deadline: arguments.deadline };
    common::run(&store).await?;
    Ok(())
}

fn tls(arguments: &ClientArguments) -> Result<ClientTlsConfig, Box<dyn Error>> {
    let chain = std::fs::read(&arguments.cert)?;
    let key = std::fs::read(&arguments.key)?;
    let servers = std::fs::read(&arguments.ca)?;
    Ok(ClientTlsConfig::new()
        .identity(Identity::from_pem(chain, key))
        .ca_certificate(Certificate::from_pem(servers)))
}

struct TonicStore {
    client: KeyValueClient<Channel>,
    deadline: Duration,
}

impl Store for TonicStore {
    async fn get(&self, key: String) -> Result<Option<Bytes>, Failure> {
        let request = GetRequest { key };
        let call = async |request| self.client.clone().get(request).await;
        Ok(self.call(request, call).await?.value)
    }

    async fn set(&self, key: String, value: Bytes) -> Result<(), Failure> {
        let request = SetRequest { key, value };
        let call = async |request| self.client.clone().set(request).await;
        self.call(request, call).await.map(|_| ())
    }

    async fn delete(&self, key: String) -> Result<bool, Failure> {
        let request = DeleteRequest { key };
        let call = async |request| self.client.clone().delete(request).await;
        Ok(self.call(request, call).await?.was_there)
    }

    async fn list(&self, prefix: String) -> Result<Vec<String>, Failure> {
        let request = ListRequest { prefix };
        let call = async |request| self.client.clone().list(request).await;
        Ok(self.call(request, call).await?.keys)
    }
}

impl TonicStore {
    /// Calls, and again within the deadline as long as the request has not run.
    async fn call<T: Clone, R>(
        &self,
        message: T,
        call: impl AsyncFn(Request<T>) -> Result<Response<R>, Status>,
    ) -> Result<R, Failure> {
        let due = Instant::now() + self.deadline;
        let mut pause = PAUSE_FIRST;
        loop {
            let left = due.saturating_duration_since(Instant::now());
            let mut request = Request::new(message.clone());
            request.set_timeout(left);
            let status = match call(request).await {
                Ok(response) => return Ok(response.into_inner()),
                Err(status) => status,
            };
            let may_retry = has_not_connected(&status);
            if !may_retry || left <= pause {
                return Err(failure(&status, due));
            }
            tokio::time::sleep(pause).await;
            pause = PAUSE_MAX.min(2 * pause);
        }
    }
}

/// Whether no connection came about: the request has not been sent.
fn has_not_connected(status: &Status) -> bool {
    let mut causes = std::iter::successors(status.source(), |&cause| cause.source());
    causes.any(|cause| cause.is::<ConnectError>())
}

fn failure(status: &Status, due: Instant) -> Failure {
    match status.code() {
        // The timeout of either side is told as a cancellation, and so are lost connections.
        Code::Cancelled if Instant::now() >= due => Failure::DeadlineExceeded,
        _ if has_not_connected(status) => Failure::DidNotRun(status.to_string()),
        Code::PermissionDenied | Code::InvalidArgument => Failure::Refused(Refusal {
            code: i32::from(status.code()).cast_unsigned(),
            text: status.message().to_owned(),
        }),
        _ => Failure::MayHaveRun(status.to_string()),
    }
}

const PAUSE_FIRST: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);
