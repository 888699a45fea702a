// loader/isolate/channel.h - frames over a local socket, with a descriptor alongside if wanted.
//
// Threads: one sends and one receives at a time. No signal is raised when the other side is gone.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace tenon::loader::isolate {

class Channel {
 public:
  explicit Channel(int socket) : socket_(socket) {}  // owns it
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Both ends of a new socket, closed on exec, above the descriptors that a worker is given. 0 or errno.
  static int pair(int* a, int* b);

  // receive() looks up after so long with Nothing, and send() asks whether it shall go on; 0: never.
  void set_slice(uint32_t ms);
  // False: the other side is gone, or the patience is. Blocks while the other side has not taken what was sent before.
  bool send(uint32_t kind, const std::string& payload, int descriptor = -1, const std::function<bool()>& patience = nullptr);
  enum class Got { Frame, Nothing, Gone };
  Got receive(uint32_t* kind, std::string* payload);
  int take_descriptor();  // that came with the last frame, -1 for none; the caller closes it
  void shut();  // both directions, from any thread: who waits here wakes with Gone
  int socket() const { return socket_; }

 private:
  bool take_frame(uint32_t* kind, std::string* payload);
  const int socket_;
  std::string in_, out_;
  int passed_ = -1;
};

}  // namespace tenon::loader::isolate
