//! Connections over TCP whose clients read slowly or confirm nothing.

use axum::routing::get;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket};
use tokio_util::sync::CancellationToken;

use super::*;

/// Much more than the system buffers.
const ANSWER_BYTES: usize = 16 * 1024 * 1024;
/// Small buffers, so that the socket accepts bytes as often as the client takes some.
const SMALL_BYTES: usize = 4096;

async fn read_slowly(client: &mut TcpStream) {
    let mut piece = [0; 1024];
    while client.read(&mut piece).await.is_ok_and(|read| read > 0) {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn who_reads_a_little_now_and_then_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let client = TcpSocket::new_v4().expect("a socket");
    let small = u32::try_from(SMALL_BYTES).expect("a small number");
    client.set_recv_buffer_size(small).expect("a small buffer");
    let address = listener.local_addr().expect("an address");
    let mut client = client.connect(address).await.expect("a connection");
    let (socket, _) = listener.accept().await.expect("a connection");
    let limited = SockRef::from(&socket).set_send_buffer_size(SMALL_BYTES);
    limited.expect("a small buffer");
    let shared = Shared {
        router: Router::new().route("/", get(|| async { vec![0_u8; ANSWER_BYTES] })),
        timeouts: Timeouts {
            unread_max: Duration::from_secs(1),
            ..Timeouts::default()
        },
        crowded: Arc::default(),
        cancel: CancellationToken::new(),
    };
    let question = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";
    client.write_all(question).await.expect("a question");
    let serving = tokio::time::timeout(Duration::from_secs(20), run(socket, shared));
    tokio::select! {
        served = serving => served.expect("the host ends the connection"),
        () = read_slowly(&mut client) => {}
    }
}

#[tokio::test]
async fn a_peer_that_confirms_nothing_is_given_up_by_the_system() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let client = TcpStream::connect(address).await.expect("a connection");
    let (socket, _) = listener.accept().await.expect("a connection");
    let timeouts = Timeouts::default();
    tune(&socket, &timeouts);
    let timeout = SockRef::from(&socket).tcp_user_timeout();
    assert_eq!(timeout.expect("an option"), Some(timeouts.unread_max * 2));
    assert!(socket.nodelay().expect("an option"));
    drop(client);
}
