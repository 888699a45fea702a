// tools/conformance/subject.h - the plugin under test, opened, with a device to run on: its own first one, or cpu:0 of the
// linked reference plugin for a kernel pack.
//
//   Library library(options.plugin);
//   Subject s(library, options);
//   Outcome o = s.run(*s.rows()[0], problem);      // prepare, launch, wait, read, retire
//
// Threads: one, except where said. Throws std::runtime_error when something that must work does not.
#pragma once
#include <tenon/plugin.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/conformance/host.h"
#include "tools/conformance/problem.h"
#include "tools/conformance/session.h"

namespace tenon::conformance {

void describe(const Options& options, Report* report);  // id, version, device: from the record, nothing is loaded

tn_diag empty_diag();
std::string text_of(tn_status status, const tn_diag& diag);
void need(tn_status status, const tn_diag& diag, const std::string& what);  // throws
// A diagnosis as plugin.h wants one of every failure; empty when it is.
std::string fault_of(tn_status status, const tn_diag& diag);

// The mapped file and its table for this host's version. An empty path: the linked reference plugin.
class Library {
 public:
  explicit Library(const std::string& path);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  const tn_plugin* query(uint32_t abi, const tn_host* host) const { return query_(abi, host); }
  bool keeps_mapped() const { return keep_; }
  const std::string& id() const { return id_; }

 private:
  void* handle_ = nullptr;
  tn_plugin_query_fn query_ = nullptr;
  bool keep_ = false;
  std::string id_;
};

// A plugin between open and close.
class Instance {
 public:
  Instance(const Library& library, Host& host);
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;
  tn_plugin table{};           // of this host's size; entries the plugin lacks are NULL
  tn_instance* self = nullptr;
  // Live objects after quiesce; closes when there are none. The destructor closes in any case.
  uint32_t close(uint64_t timeout_ns = 2000000000);
};
tn_plugin table_of(const tn_plugin* given);

// The row's extension about a stored input, NULL when it has none.
const tn_kernel_packed* packed_of(const tn_kernel_info& row);

struct Memory {
  tn_buffer buffer{};
  uint64_t bytes = 0;
  tn_view view(uint64_t offset, uint64_t size) const;
};

class Subject {
 public:
  Subject(const Library& library, const Options& options);
  ~Subject();
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;

  bool pack() const { return base_ != nullptr; }  // no devices of its own
  Host& host() { return host_; }
  const tn_plugin& table() const { return own_->table; }    // the plugin under test
  const tn_plugin& devices() const { return device_owner_->table; }
  tn_instance* self() const { return own_->self; }
  tn_instance* device_instance() const { return device_owner_->self; }
  tn_device* device() const { return device_; }
  const tn_device_ref& ref() const { return ref_; }
  const tn_device_info& info() const { return info_; }
  const std::vector<const tn_kernel_info*>& rows() const { return rows_; }
  const tn_kernel_info* row_of(uint64_t op_id) const;       // the first for the op, NULL when there is none
  std::string device_name() const;

  Memory alloc(uint64_t bytes);
  void free(Memory* memory);
  void write(const Memory& to, uint64_t offset, const void* data, uint64_t bytes);  // waits
  void read(const Memory& from, uint64_t offset, void* data, uint64_t bytes);       // waits
  tn_dev_queue* queue() const { return queue_; }
  // Signals the own timeline behind everything on the own queue, and waits. The failure, if work since the last call failed.
  tn_status finish(tn_diag* diag);

  // The problem as the row is asked about it: an input that it takes only stored by its own `pack` has an opaque layout.
  Problem as_asked(const tn_kernel_info& row, const Problem& p) const;
  // Whether constraints and supports() let the op through. why: what refused it.
  enum class Answer { Yes, Constraint, Refused };
  Answer asks(const tn_kernel_info& row, const Problem& p, std::string* why, tn_support* out = nullptr);
  // Whether the row's `bytes` and `pack` take the input of a row that has them; TN_OK for all others.
  tn_status storable(const tn_kernel_info& row, const Problem& p, uint64_t* out_bytes, tn_diag* diag);
  enum class Stage { Prepare, Launch, Work, Done };
  // Runs the op by this kernel. o.status is the failure, *stage where it was. Bytes that no element of an output covers
  // must stay as they were, else TN_E_BUG.
  Outcome run(const tn_kernel_info& row, const Problem& p, Stage* stage = nullptr);

 private:
  tn_status store(const tn_kernel_info& row, const Problem& p, std::vector<tn_view>* views, tn_diag* diag);
  Memory& slot(size_t number, uint64_t bytes);
  tn_status launch(const tn_kernel_plan& plan, const Problem& p, std::vector<tn_view> views, tn_diag* diag);
  Host host_, base_host_;
  std::unique_ptr<Library> base_library_;
  std::unique_ptr<Instance> own_, base_;
  Instance* device_owner_ = nullptr;
  tn_device* device_ = nullptr;
  tn_device_info info_{};
  tn_device_ref ref_{};
  std::vector<tn_cap> caps_;
  std::vector<const tn_kernel_info*> rows_;
  tn_dev_queue* queue_ = nullptr;
  tn_dev_timeline* timeline_ = nullptr;
  uint64_t value_ = 0;
  uint32_t space_ = 0;
  std::vector<Memory> slots_;
};

}  // namespace tenon::conformance
