//! The floor for bench/broker: a proxy of hyper and nothing else. No rule, no check, no pool, no limit.
//!   bare_proxy PORT
#![allow(clippy::unwrap_used)]

use bytes::Bytes;
use http_body::Body;
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::copy_bidirectional_with_sizes;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;

struct Answer(Option<Incoming>);

impl Body for Answer {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<hyper::Result<http_body::Frame<Bytes>>>> {
        self.0
            .as_mut()
            .map_or(Poll::Ready(None), |body| Pin::new(body).poll_frame(cx))
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.0
            .as_ref()
            .map_or_else(|| http_body::SizeHint::with_exact(0), Incoming::size_hint)
    }
}

async fn connect(authority: &str) -> TcpStream {
    let stream = TcpStream::connect(authority).await.unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

async fn serve(
    mut request: Request<Incoming>,
    upstream: Arc<Mutex<Option<SendRequest<Incoming>>>>,
) -> hyper::Result<Response<Answer>> {
    let authority = request.uri().authority().unwrap().to_string();
    if request.method() == Method::CONNECT {
        let mut stream = connect(&authority).await;
        tokio::spawn(async move {
            let mut client = TokioIo::new(hyper::upgrade::on(&mut request).await.unwrap());
            let _ = copy_bidirectional_with_sizes(&mut client, &mut stream, 65536, 65536).await;
        });
        return Ok(Response::new(Answer(None)));
    }
    let mut upstream = upstream.lock().await;
    if upstream.as_ref().is_none_or(SendRequest::is_closed) {
        let (sender, connection) = handshake(TokioIo::new(connect(&authority).await)).await?;
        tokio::spawn(connection);
        *upstream = Some(sender);
    }
    *request.uri_mut() = request.uri().path_and_query().unwrap().as_str().parse().unwrap();
    Ok(upstream
        .as_mut()
        .unwrap()
        .send_request(request)
        .await?
        .map(|body| Answer(Some(body))))
}

#[tokio::main]
async fn main() {
    let port = std::env::args().nth(1).unwrap();
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).await.unwrap();
    while let Ok((stream, _)) = listener.accept().await {
        stream.set_nodelay(true).unwrap();
        let upstream = Arc::default();
        let service = service_fn(move |request| serve(request, Arc::clone(&upstream)));
        tokio::spawn(
            hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .with_upgrades(),
        );
    }
}
