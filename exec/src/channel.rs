//! Bytes and descriptors over the Unix socket between the addon and the helper. What the bytes mean is left to
//! `wire`.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Descriptors one message may carry.
pub const MAX_DESCRIPTORS: usize = 8;

#[cfg(any(target_os = "linux", target_os = "android"))]
const SEND_FLAGS: libc::c_int = libc::MSG_NOSIGNAL;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const SEND_FLAGS: libc::c_int = 0;

#[cfg(any(target_os = "linux", target_os = "android"))]
const RECEIVE_FLAGS: libc::c_int = libc::MSG_CMSG_CLOEXEC;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const RECEIVE_FLAGS: libc::c_int = 0;

/// Room for the control message, aligned as the kernel reads it.
#[repr(C, align(8))]
struct Control([u8; 64]);

/// Sends the start of `bytes` together with `descriptors`, and says how many bytes went out. Never raises
/// SIGPIPE where the platform can help it.
pub fn send(socket: BorrowedFd<'_>, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<usize> {
    if descriptors.len() > MAX_DESCRIPTORS {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut control = Control([0; 64]);
    let mut part = libc::iovec {
        iov_base: bytes.as_ptr() as *mut libc::c_void,
        iov_len: bytes.len(),
    };
    // SAFETY: an all-zero msghdr is a valid one: no name, no parts, no control.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    if !descriptors.is_empty() {
        let payload = std::mem::size_of_val(descriptors) as u32;
        message.msg_control = control.0.as_mut_ptr().cast();
        // SAFETY: the size macros only compute; `control` holds CMSG_SPACE of MAX_DESCRIPTORS descriptors
        // (16 + 32 bytes), so the header and its data lie inside it.
        unsafe {
            message.msg_controllen = libc::CMSG_SPACE(payload) as _;
            let header = libc::CMSG_FIRSTHDR(&message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(payload) as _;
            let data = libc::CMSG_DATA(header).cast::<RawFd>();
            for (index, descriptor) in descriptors.iter().enumerate() {
                data.add(index).write_unaligned(descriptor.as_raw_fd());
            }
        }
    }
    loop {
        // SAFETY: `message` points at `part` and `control`, both alive here.
        let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &message, SEND_FLAGS) };
        if sent >= 0 {
            return Ok(sent as usize);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Receives up to `bytes.len()` bytes and the descriptors that came with them, close-on-exec. 0 is the end.
pub fn receive(
    socket: BorrowedFd<'_>,
    bytes: &mut [u8],
    descriptors: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    let mut control = Control([0; 64]);
    let mut part = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    };
    // SAFETY: an all-zero msghdr is a valid one.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = control.0.len() as _;
    let received = loop {
        // SAFETY: `message` points at `part` and `control`, both alive here.
        let received = unsafe { libc::recvmsg(socket.as_raw_fd(), &mut message, RECEIVE_FLAGS) };
        if received >= 0 {
            break received as usize;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    };
    // SAFETY: the kernel filled `control` and set its length; the macros walk inside it, and every descriptor
    // in an SCM_RIGHTS message is new and ours.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(&message);
        while !header.is_null() {
            if (*header).cmsg_level == libc::SOL_SOCKET && (*header).cmsg_type == libc::SCM_RIGHTS {
                let payload = (*header).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
                let data = libc::CMSG_DATA(header).cast::<RawFd>();
                for index in 0..payload / size_of::<RawFd>() {
                    let raw = data.add(index).read_unaligned();
                    #[cfg(not(any(target_os = "linux", target_os = "android")))]
                    libc::fcntl(raw, libc::F_SETFD, libc::FD_CLOEXEC);
                    descriptors.push(OwnedFd::from_raw_fd(raw));
                }
            }
            header = libc::CMSG_NXTHDR(&message, header);
        }
    }
    Ok(received)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn descriptors_arrive_open_and_close_on_exec() {
        let (left, right) = UnixStream::pair().unwrap();
        let (end, mut other_end) = UnixStream::pair().unwrap();
        assert_eq!(
            send(left.as_fd(), b"hello", &[end.as_fd(), end.as_fd()]).unwrap(),
            5
        );
        drop(end);
        let (mut bytes, mut descriptors) = ([0; 16], Vec::new());
        assert_eq!(receive(right.as_fd(), &mut bytes, &mut descriptors).unwrap(), 5);
        assert_eq!((&bytes[..5], descriptors.len()), (&b"hello"[..], 2));
        // SAFETY: asks for the flags of a descriptor we own.
        let flags = unsafe { libc::fcntl(descriptors[0].as_raw_fd(), libc::F_GETFD) };
        assert_eq!(flags & libc::FD_CLOEXEC, libc::FD_CLOEXEC);
        drop(descriptors);
        assert_eq!(other_end.read(&mut bytes).unwrap(), 0);
    }

    #[test]
    fn a_closed_peer_is_an_error_or_the_end_and_no_signal() {
        let (left, right) = UnixStream::pair().unwrap();
        drop(right);
        assert!(send(left.as_fd(), b"x", &[]).is_err());
        assert_eq!(receive(left.as_fd(), &mut [0; 4], &mut Vec::new()).unwrap(), 0);
    }
}
