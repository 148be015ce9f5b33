//! The floor for bench/broker: a proxy of hyper and nothing else. No rule, no check, no pool, no limit.
//!   bare_proxy PORT
#![allow(clippy::unwrap_used)]

use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use std::sync::Arc;
use tokio::io::copy_bidirectional_with_sizes;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;

type Upstream = Arc<Mutex<Option<SendRequest<Incoming>>>>;

async fn connect(authority: &str) -> TcpStream {
    let stream = TcpStream::connect(authority).await.unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

async fn serve(mut request: Request<Incoming>, upstream: Upstream) -> hyper::Result<Response<Incoming>> {
    let authority = request.uri().authority().unwrap().to_string();
    if request.method() == Method::CONNECT {
        let mut stream = connect(&authority).await;
        let client = hyper::upgrade::on(&mut request);
        tokio::spawn(async move {
            let mut client = TokioIo::new(client.await.unwrap());
            let _ = copy_bidirectional_with_sizes(&mut client, &mut stream, 65536, 65536).await;
        });
        // The empty body of the CONNECT is that of its answer, too.
        return Ok(Response::new(request.into_body()));
    }
    let mut upstream = upstream.lock().await;
    if upstream.as_ref().is_none_or(SendRequest::is_closed) {
        let (sender, connection) = handshake(TokioIo::new(connect(&authority).await)).await?;
        tokio::spawn(connection);
        *upstream = Some(sender);
    }
    *request.uri_mut() = request.uri().path_and_query().unwrap().as_str().parse().unwrap();
    upstream.as_mut().unwrap().send_request(request).await
}

#[tokio::main]
async fn main() {
    let port = std::env::args().nth(1).unwrap();
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).await.unwrap();
    while let Ok((stream, _)) = listener.accept().await {
        stream.set_nodelay(true).unwrap();
        let upstream = Upstream::default();
        let service = service_fn(move |request| serve(request, upstream.clone()));
        tokio::spawn(
            hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .with_upgrades(),
        );
    }
}
