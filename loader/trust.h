// loader/trust.h - whose code may run: owners and modes of a file and its folders, and the allow list of a runtime.
//
// Owner rule, always: the file and each folder above it belong to root or to the user of the process, and nobody else can
// write there. A folder with the sticky bit may be open to all (/tmp): others cannot rename or remove what is not theirs.
// A group of a user's own (group number = user number, not root) is the user. The walk up ends at a folder that also holds
// libtenon.so, for whoever can change that one can change the loader itself.
//
// Allow list: plugin ids, or "sha256:" and 64 digits of the file's content; a plugin needs one matching entry.
//   off      (default) a list that is given is kept to; without one every trusted file will do
//   warn     faults of owners, modes and list are noted in the verdict and the plugin is used all the same
//   enforce  as off, a list is required, and what was checked is copied to sealed memory that nobody can change any more
#pragma once
#include <sys/types.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "loader/file.h"
#include "loader/verdict.h"

namespace tenon::loader {

struct TrustPolicy {
  uint32_t mode = 0;               // TN_TRUST_*
  std::vector<std::string> allow;  // ids and "sha256:..." entries

  bool wants_list() const;  // false: any plugin that its owner rule lets pass
};

struct OwnerRule {
  uid_t user = 0;              // beside root
  std::string library_folder;  // where libtenon.so lies; empty: every folder up to / is judged
};

// `path` is absolute and without links; `facts` are those of the opened file. Nothing, or untrusted with the culprit named.
std::optional<Verdict> check_owner(const std::string& path, const FileFacts& facts, const OwnerRule&);

// Nothing when no list is wanted or an entry matches; else not-allowed, which gives the checksum to add.
std::optional<Verdict> check_allowed(const std::string& id, std::span<const std::byte> content, const TrustPolicy&);

}  // namespace tenon::loader
