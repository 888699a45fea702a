#include "loader/isolate/channel.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "loader/isolate/wire.h"

namespace tenon::loader::isolate {
namespace {

struct Head {
  uint32_t bytes, kind;
};

union Control {
  cmsghdr align;
  char room[CMSG_SPACE(sizeof(int))];
};

}  // namespace

Channel::~Channel() {
  if (passed_ >= 0) close(passed_);
  close(socket_);
}

int Channel::pair(int* a, int* b) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return errno;
  *a = fcntl(ends[0], F_DUPFD_CLOEXEC, 10);
  *b = fcntl(ends[1], F_DUPFD_CLOEXEC, 10);
  const int error = errno;
  close(ends[0]);
  close(ends[1]);
  if (*a >= 0 && *b >= 0) return 0;
  if (*a >= 0) close(*a);
  if (*b >= 0) close(*b);
  return error;
}

void Channel::set_slice(uint32_t ms) {
  timeval t{};
  t.tv_sec = ms / 1000, t.tv_usec = static_cast<suseconds_t>(ms % 1000) * 1000;
  setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
  setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
}

bool Channel::send(uint32_t kind, const std::string& payload, int descriptor, const std::function<bool()>& patience) {
  const Head head{static_cast<uint32_t>(payload.size()), kind};
  out_.assign(reinterpret_cast<const char*>(&head), sizeof head);
  out_ += payload;
  Control control{};
  for (size_t at = 0; at < out_.size();) {
    iovec piece{out_.data() + at, out_.size() - at};
    msghdr message{};
    message.msg_iov = &piece, message.msg_iovlen = 1;
    if (descriptor >= 0 && at == 0) {
      message.msg_control = control.room, message.msg_controllen = sizeof control.room;
      cmsghdr* c = CMSG_FIRSTHDR(&message);
      c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(c), &descriptor, sizeof descriptor);
    }
    const ssize_t n = sendmsg(socket_, &message, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) && patience != nullptr && patience()) continue;
    if (n < 0) return false;
    at += static_cast<size_t>(n);
  }
  return true;
}

bool Channel::take_frame(uint32_t* kind, std::string* payload) {
  Head head{};
  if (in_.size() < sizeof head) return false;
  std::memcpy(&head, in_.data(), sizeof head);
  if (in_.size() - sizeof head < head.bytes) return false;
  *kind = head.kind;
  payload->assign(in_, sizeof head, head.bytes);
  in_.erase(0, sizeof head + head.bytes);
  return true;
}

int Channel::take_descriptor() { return std::exchange(passed_, -1); }

Channel::Got Channel::receive(uint32_t* kind, std::string* payload) {
  while (!take_frame(kind, payload)) {
    char buffer[8192];
    Control control{};
    iovec piece{buffer, sizeof buffer};
    msghdr message{};
    message.msg_iov = &piece, message.msg_iovlen = 1;
    message.msg_control = control.room, message.msg_controllen = sizeof control.room;
    const ssize_t n = recvmsg(socket_, &message, MSG_CMSG_CLOEXEC);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Got::Nothing;
    if (n <= 0) return Got::Gone;
    for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
      if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
      if (passed_ >= 0) close(passed_);
      std::memcpy(&passed_, CMSG_DATA(c), sizeof passed_);
    }
    in_.append(buffer, static_cast<size_t>(n));
    Head head{};
    if (in_.size() >= sizeof head) std::memcpy(&head, in_.data(), sizeof head);
    if (head.bytes > kMostFrameBytes) return Got::Gone;  // nothing that either side sends
  }
  return Got::Frame;
}

void Channel::shut() { shutdown(socket_, SHUT_RDWR); }

}  // namespace tenon::loader::isolate
