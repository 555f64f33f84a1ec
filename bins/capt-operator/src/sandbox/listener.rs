//! The HTTP listener of the sandbox, for kubectl and anybody else.

use std::{net::SocketAddr, time::Duration};

use capt_sim::service::Service;
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpListener, task::JoinSet, time::sleep};

/// How long to wait after a connection could not be taken, for example for want of file handles.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves `service` until it is dropped, and all connections with it.
pub(super) async fn serve(listener: TcpListener, service: Service) {
    let mut connections = JoinSet::new();
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "cannot take a connection");
                    sleep(PAUSE).await;
                    continue;
                }
            },
            Some(_) = connections.join_next() => continue,
        };
        let service = service.clone();
        connections.spawn(async move {
            let respond = service_fn(|request| {
                let service = service.clone();
                async move { Ok::<_, std::convert::Infallible>(service.respond(request).await) }
            });
            // A client that goes away in the middle is its own business.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), respond).await;
        });
    }
}

/// A kubeconfig for `address`. The token is no secret: kubectl asks for a name and a password where there is none.
pub(super) fn kubeconfig(address: SocketAddr) -> String {
    format!(
        "apiVersion: v1
kind: Config
current-context: sandbox
contexts:
- name: sandbox
  context: {{cluster: sandbox, user: sandbox}}
clusters:
- name: sandbox
  cluster: {{server: \"http://{address}\"}}
users:
- name: sandbox
  user: {{token: sandbox}}
"
    )
}
