#include "loader/isolate/worker_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "kernel/status.h"

extern char** environ;

namespace tenon::loader::isolate {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using kernel::fail;

std::string signal_text(int number) {
  const char* name = sigabbrev_np(number);
  return name != nullptr ? "SIG" + std::string(name) : "signal " + std::to_string(number);
}

int64_t processor_ns(pid_t pid) {
  clockid_t clock;
  timespec t{};
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0) return 0;
  return int64_t{t.tv_sec} * 1000000000 + t.tv_nsec;
}

// A thread that is started meanwhile gets no signals: they are for the program's own threads.
struct SignalsBlocked {
  sigset_t before;
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
};

struct SpawnSettings {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  SpawnSettings() {
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setpgroup(&attributes, 0);  // Ctrl-C is for the program alone, and what the worker starts ends with it
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
};

}  // namespace

// When an answer is overdue.
class WorkerProcess::Deadline {
 public:
  Deadline(const WorkerProcess& worker, Call what) : worker_(worker), patience_(patience_of(what)) { restart(); }
  void restart() {
    end_ = Clock::now() + milliseconds(worker_.job_.timeout_ms);
    processor_ = -1;
  }
  // Asked from time to time. The processor's time is first looked at then: most answers come before.
  bool over() {
    if (patience_ == Patience::Computing && processor_ < 0) processor_ = processor_ns(worker_.pid_);
    if (Clock::now() < end_) return false;
    // A hundredth of the time: less is housekeeping of the process, not a kernel at work.
    if (patience_ != Patience::Computing || processor_ns(worker_.pid_) - processor_ < int64_t{worker_.job_.timeout_ms} * 10000) return true;
    restart();
    return false;
  }

 private:
  const WorkerProcess& worker_;
  const Patience patience_;
  Clock::time_point end_;
  int64_t processor_ = -1;
};

Lane::Lane(WorkerProcess* owner, int socket) : channel(socket), owner_(owner) {
  std::lock_guard lock(owner->mutex_);
  owner->lanes_.push_back(this);
}

Lane::~Lane() {
  std::lock_guard lock(owner_->mutex_);
  std::erase(owner_->lanes_, this);
}

WorkerProcess::WorkerProcess(Job job) : job_(std::move(job)) {
  void* page = mmap(nullptr, 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) throw std::bad_alloc();
  madvise(page, 1, MADV_WIPEONFORK);
  own_ = static_cast<volatile char*>(page);
  *own_ = 1;
}

WorkerProcess::~WorkerProcess() {
  if (forked()) {  // the worker and the thread are the parent's
    for (auto& lane : free_lanes_) static_cast<void>(lane.release());
    static_cast<void>(events_.release());
    return;
  }
  stopping_.store(true);
  free_lanes_.clear();
  if (events_ != nullptr) events_->shut();
  if (watcher_ != nullptr) watcher_->join();
  delete watcher_;
  munmap(const_cast<char*>(own_), 1);
}

// The thread that starts the worker lives as long as the worker shall: the system ends the worker with it.
tn_status WorkerProcess::start(tn_diag* diag) {
  int ours = -1;
  int error = Channel::pair(&ours, &worker_end_);
  if (error == 0) {
    events_ = std::make_unique<Channel>(ours);
    const SignalsBlocked during;
    watcher_ = new std::thread([this] { watch(); });
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return started_; });
    error = start_error_;
  }
  if (error == 0) return TN_OK;
  lost_.store(true);
  return fail(diag, TN_E_UNAVAILABLE, kernel::id(kernel::kLoad, 26), "no worker process could be started\nwhy: %.120s: %s\ntry: repair the installation, or take the plugin out of loader.isolate", job_.program.c_str(), std::strerror(error));
}

int WorkerProcess::spawn(int events) {
  SpawnSettings s;
  posix_spawn_file_actions_addopen(&s.files, 0, "/dev/null", O_RDONLY, 0);
  // What the plugin prints is no part of the program's output.
  if (fcntl(2, F_GETFD) < 0) posix_spawn_file_actions_addopen(&s.files, 2, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&s.files, 2, 1);
  posix_spawn_file_actions_adddup2(&s.files, events, kEventChannel);
  const int plugin = job_.descriptor >= 0 ? fcntl(job_.descriptor, F_DUPFD_CLOEXEC, 10) : -1;
  if (plugin >= 0) posix_spawn_file_actions_adddup2(&s.files, plugin, kPluginFile);
  posix_spawn_file_actions_addclosefrom_np(&s.files, plugin >= 0 ? kPluginFile + 1 : kPluginFile);
  const std::string path = plugin >= 0 ? "/proc/self/fd/" + std::to_string(kPluginFile) : job_.plugin;
  const std::string numbers[] = {std::to_string(job_.abi), std::to_string(job_.threads), std::to_string(std::clamp(job_.timeout_ms / 4, 1u, 1000u))};
  char* const arguments[] = {const_cast<char*>(job_.program.c_str()), const_cast<char*>(path.c_str()), const_cast<char*>(numbers[0].c_str()),
                             const_cast<char*>(numbers[1].c_str()), const_cast<char*>(numbers[2].c_str()), nullptr};
  char plain[] = "PATH=/usr/bin:/bin";
  char* const bare[] = {plain, nullptr};
  pid_t pid = 0;
  const int error = posix_spawn(&pid, job_.program.c_str(), &s.files, &s.attributes, arguments, job_.secure ? bare : environ);
  if (plugin >= 0) close(plugin);
  if (error == 0) pid_.store(pid);
  return error;
}

// The thread's life: start, serve, notice the end.
void WorkerProcess::watch() {
  const int error = spawn(worker_end_);
  close(worker_end_);
  {
    std::lock_guard lock(mutex_);
    started_ = true, start_error_ = error, ended_ = error != 0;
  }
  changed_.notify_all();
  if (error != 0) return;
  events_->set_slice(250);
  int status = 0;
  bool connected = true;
  for (auto grace = Clock::time_point::max();;) {
    uint32_t kind = 0;
    std::string payload;
    if (connected) {
      const Channel::Got got = events_->receive(&kind, &payload);
      connected = got == Channel::Got::Nothing || (got == Channel::Got::Frame && serve_frame(kind, payload));
      if (!connected) grace = Clock::now() + milliseconds(stopping_ ? 200 : 1000);
    } else {
      poll(nullptr, 0, 2);
    }
    const pid_t found = waitpid(pid_, &status, WNOHANG);
    if (found != 0 && !(found < 0 && errno == EINTR)) return note_end(status, found > 0);
    if (Clock::now() >= grace) kill(-pid_, SIGKILL), kill(pid_, SIGKILL), grace = Clock::time_point::max();
  }
}

void WorkerProcess::note_end(int status, bool known) {
  kill(-pid_, SIGKILL);  // what it left running
  {
    std::lock_guard lock(mutex_);
    if (cause_.empty()) {
      if (!known) cause_ = "it ended; the program took its status";
      else if (WIFSIGNALED(status)) cause_ = signal_text(WTERMSIG(status));
      else cause_ = "exit status " + std::to_string(WEXITSTATUS(status));
    }
    ended_ = true;
    lost_.store(true);
    for (Lane* lane : lanes_) lane->channel.shut();
  }
  changed_.notify_all();
}

bool WorkerProcess::serve_frame(uint32_t kind, const std::string& payload) {
  const tn_host* host = host_.load();
  if (kind == kLog) {
    if (payload.size() >= sizeof(uint32_t) && host != nullptr) host->log(host->ctx, Reader(payload).get<uint32_t>(), payload.data() + sizeof(uint32_t), static_cast<uint32_t>(payload.size() - sizeof(uint32_t)));
    return true;
  }
  if (kind != kAsk && kind != kCancelled) return false;
  std::lock_guard lock(events_mutex_);
  return events_->send(kReply, answer_for(kind, payload));
}

std::string WorkerProcess::answer_for(uint32_t kind, const std::string& payload) const {
  const tn_host* host = host_.load();
  Writer w;
  if (kind == kCancelled) w.put<int32_t>(host != nullptr && host->cancelled != nullptr ? host->cancelled(host->ctx) : 0);
  else w.put_text(host != nullptr && host->config != nullptr ? host->config(host->ctx, payload.c_str()) : nullptr);
  return w.bytes();
}

std::unique_ptr<Lane> WorkerProcess::open_lane(tn_diag* diag) {
  int ours = -1, theirs = -1;
  if (const int error = Channel::pair(&ours, &theirs)) {
    fail(diag, TN_E_LIMIT, kernel::id(kernel::kLoad, 46), "no connection to a worker process\nwhy: plugin %s: %s\ntry: raise the limit of open files", job_.id.c_str(), std::strerror(error));
    return nullptr;
  }
  auto lane = std::make_unique<Lane>(this, ours);
  lane->channel.set_slice(std::clamp(job_.timeout_ms / 4, 1u, 250u));
  {
    std::lock_guard lock(events_mutex_);
    events_->send(kLane, {}, theirs);  // if nobody is there any more, the call will find that out
  }
  close(theirs);
  return lane;
}

std::unique_ptr<Lane> WorkerProcess::take_lane(tn_diag* diag) {
  {
    std::lock_guard lock(mutex_);
    if (!free_lanes_.empty()) {
      auto lane = std::move(free_lanes_.back());
      free_lanes_.pop_back();
      return lane;
    }
  }
  return open_lane(diag);
}

tn_status WorkerProcess::usable(Call what, tn_diag* diag) const {
  if (__builtin_expect(forked(), 0))
    return fail(diag, TN_E_STATE, kernel::id(kernel::kLoad, 48), "an isolated plugin cannot be used after fork\nwhy: the worker process of %s belongs to the parent process; asked for was %s\ntry: create a runtime in the child process", job_.id.c_str(), call_name(what));
  return lost_.load(std::memory_order_acquire) ? lost(what, diag) : TN_OK;
}

tn_status WorkerProcess::lost(Call what, tn_diag* diag) const {
  std::unique_lock lock(mutex_);
  // A broken connection is seen before the end of the process is.
  changed_.wait_for(lock, milliseconds(2000), [&] { return ended_ || !cause_.empty(); });
  return fail(diag, TN_E_DEVICE_LOST, kernel::id(kernel::kLoad, 46), "the worker process of an isolated plugin is gone\nwhy: %.48s, process %d: %.60s; asked for was %.32s\ntry: go on with another device, or load the plugin again",
              job_.id.c_str(), static_cast<int>(pid_), cause_.empty() ? "it closed its connections" : cause_.c_str(), call_name(what));
}

void WorkerProcess::give_up(Call what) {
  {
    std::lock_guard lock(mutex_);
    if (cause_.empty()) cause_ = "no answer to " + std::string(call_name(what)) + " within " + std::to_string(job_.timeout_ms) + " ms";
    lost_.store(true);
  }
  kill(-pid_, SIGKILL);
  kill(pid_, SIGKILL);
}

tn_status WorkerProcess::call(Lane* lane, Call what, const Writer& request, std::string* reply, tn_diag* diag, int descriptor) {
  if (tn_status s = usable(what, diag)) return s;
  std::unique_ptr<Lane> taken;
  if (lane == nullptr) {
    taken = take_lane(diag);
    if (taken == nullptr) return TN_E_LIMIT;
    lane = taken.get();
  }
  tn_status status = send(lane, what, static_cast<uint32_t>(what), request, diag, descriptor);
  if (status == TN_OK) status = receive(lane, what, reply, diag);
  if (taken != nullptr && !lost_.load()) {
    std::lock_guard lock(mutex_);
    free_lanes_.push_back(std::move(taken));
  }
  return status;
}

tn_status WorkerProcess::post(Lane* lane, Call what, const Writer& request, tn_diag* diag) {
  if (tn_status s = usable(what, diag)) return s;
  return send(lane, what, static_cast<uint32_t>(what) | kPosted, request, diag);
}

tn_status WorkerProcess::send(Lane* lane, Call what, uint32_t kind, const Writer& request, tn_diag* diag, int descriptor) {
  std::optional<Deadline> deadline;  // read only when the worker has not taken what was sent before
  bool overdue = false;
  const auto patience = [&] {
    if (!deadline) deadline.emplace(*this, what);
    return !(overdue = deadline->over());
  };
  if (lane->channel.send(kind, request.bytes(), descriptor, patience)) return TN_OK;
  if (overdue) give_up(what);
  lost_.store(true);
  return lost(what, diag);
}

tn_status WorkerProcess::receive(Lane* lane, Call what, std::string* reply, tn_diag* diag) {
  Deadline deadline(*this, what);
  for (uint32_t kind = 0;;) {
    switch (lane->channel.receive(&kind, reply)) {
      case Channel::Got::Gone:
        lost_.store(true);
        return lost(what, diag);
      case Channel::Got::Nothing:
        if (!deadline.over()) continue;
        give_up(what);
        return lost(what, diag);
      case Channel::Got::Frame: break;
    }
    if (kind == kBeat) {
      deadline.restart();
      continue;
    }
    Reader in(*reply);
    const auto status = in.get<tn_status>();
    const auto told = in.get<uint32_t>();
    size_t head = sizeof(tn_status) + sizeof(uint32_t);
    if (told != 0) {
      const auto said = in.get<tn_diag>();
      head += sizeof said;
      if (diag != nullptr && in.good()) *diag = said;
    }
    if (!in.good() || kind != kAnswer) return give_up(what), lost(what, diag);
    reply->erase(0, head);
    return status;
  }
}

}  // namespace tenon::loader::isolate
