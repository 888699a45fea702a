#include "loader/trust.h"

#include <sys/stat.h>
#include <tenon/runtime.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "loader/sha256.h"

namespace tenon::loader {
namespace {

namespace fs = std::filesystem;

std::string mode_text(mode_t mode) {
  char text[16];
  std::snprintf(text, sizeof text, "%04o", static_cast<unsigned>(mode & 07777));
  return text;
}

// What is wrong with one file or folder; empty when nothing is.
std::string fault_of(const std::string& path, uid_t owner, gid_t group, mode_t mode, const OwnerRule& rule) {
  if (owner != 0 && owner != rule.user) {
    const std::string wanted = rule.user == 0 ? "root" : "root or user " + std::to_string(rule.user);
    return path + " belongs to user " + std::to_string(owner) + ", " + wanted + " is wanted";
  }
  if (S_ISDIR(mode) && (mode & S_ISVTX) != 0) return {};
  if ((mode & S_IWOTH) != 0) return path + " can be written by everybody (mode " + mode_text(mode) + ")";
  const bool own_group = owner != 0 && group == owner;
  if ((mode & S_IWGRP) != 0 && !own_group) return path + " can be written by group " + std::to_string(group) + " (mode " + mode_text(mode) + ")";
  return {};
}

bool holds_library(const fs::path& folder, const std::string& library_folder) {
  if (library_folder.empty()) return false;
  const fs::path library = library_folder;
  return std::mismatch(folder.begin(), folder.end(), library.begin(), library.end()).first == folder.end();
}

bool same_digits(const std::string& a, const std::string& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

}  // namespace

bool TrustPolicy::wants_list() const { return !allow.empty() || mode == TN_TRUST_ENFORCE; }

std::optional<Verdict> check_owner(const std::string& path, const FileFacts& facts, const OwnerRule& rule) {
  std::string fault = fault_of(path, facts.owner, facts.group, facts.mode, rule);
  for (fs::path folder = fs::path(path).parent_path(); fault.empty(); folder = folder.parent_path()) {
    if (holds_library(folder, rule.library_folder)) break;
    struct stat info {};
    if (stat(folder.c_str(), &info) != 0) return verdict(Code::Untrusted, folder.string() + " cannot be looked at", errno);
    fault = fault_of(folder.string(), info.st_uid, info.st_gid, info.st_mode, rule);
    if (folder == folder.parent_path()) break;
  }
  if (fault.empty()) return std::nullopt;
  return verdict(Code::Untrusted, fault);
}

std::optional<Verdict> check_allowed(const std::string& id, std::span<const std::byte> content, const TrustPolicy& policy) {
  if (!policy.wants_list()) return std::nullopt;
  if (std::find(policy.allow.begin(), policy.allow.end(), id) != policy.allow.end()) return std::nullopt;
  const std::string sum = "sha256:" + sha256_text(content);
  for (const std::string& entry : policy.allow) {
    if (is_sha256_entry(entry) && same_digits(entry, sum)) return std::nullopt;
  }
  return verdict(Code::NotAllowed, id + " is not among the " + std::to_string(policy.allow.size()) + " allowed entries, nor is " + sum);
}

}  // namespace tenon::loader
