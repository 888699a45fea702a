// Answers of drivers, kept between runs: a second look starts no driver. One file a driver, replaced when it changes.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <tenon/io/file.hpp>
#include <tenon/tenon.hpp>

#include "tools/drivers/protocol.h"
#include "tools/tenon/look/drivers.h"

namespace tenon::cli {
namespace {

constexpr const char* kHead = "tenon-drivers 1";

std::string words_of(const DriverJob& job) {
  std::string text = job.kind;
  for (const std::string& name : job.names) text += ' ' + name;
  return text;
}

std::string path_of(const AskOptions& options, const DriverJob& job) {
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (unsigned char c : words_of(job)) hash = (hash ^ c) * 1099511628211u;
  char name[48];
  std::snprintf(name, sizeof name, "/driver-%016llx.json", static_cast<unsigned long long>(hash));
  return options.folder + name;
}

std::string stamp_of(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return "";
  return std::to_string(info.st_size) + "." + std::to_string(info.st_mtim.tv_sec) + "." + std::to_string(info.st_mtim.tv_nsec) + "." + std::to_string(info.st_ino);
}

// The libraries as they are named: a driver that crashed while it was loaded could not say which file it is.
std::string files_of(const DriverJob& job) {
  std::string text;
  const char* list = std::getenv("LD_LIBRARY_PATH");
  for (const std::string& name : job.names) {
    if (name.find('/') != std::string::npos) text += stamp_of(name) + ' ';
    std::istringstream folders(list != nullptr && name.find('/') == std::string::npos ? list : "");
    for (std::string folder; std::getline(folders, folder, ':');) text += stamp_of(folder + "/" + name) + ' ';
  }
  return text;
}

std::string head_of(const AskOptions& options, const DriverJob& job) {
  return JsonRow().add("format", kHead).add("job", words_of(job)).add("files", files_of(job)).add("depends_on", options.identity).text() + "\n";
}

// Every library that was in use is still the same file.
bool still_true(const std::string& rows) {
  for (size_t at = 0, end; (end = rows.find('\n', at)) != std::string::npos; at = end + 1) {
    if (rows.compare(at, 12, "{\"library\":\"") != 0) continue;
    const auto row = nlohmann::json::parse(rows.begin() + static_cast<ptrdiff_t>(at), rows.begin() + static_cast<ptrdiff_t>(end), nullptr, false);
    if (!row.is_object() || !row.contains("stamp") || !row["library"].is_string() || row["stamp"] != stamp_of(row["library"].get<std::string>())) return false;
  }
  return true;
}

// Nobody else may say what a driver answers.
bool is_own(const std::string& folder) {
  struct stat info {};
  return stat(folder.c_str(), &info) == 0 && info.st_uid == geteuid() && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// What may be another thing at the next look, and costs little to ask again: a library that does not load, codes. That one is
// absent is known until a folder of libraries changes.
bool worth_keeping(const DriverAnswer& answer) {
  if (answer.job.kind == "nodes") return answer.faults.empty();
  const auto absent = [](const Fault& f) { return f.reason == Reason::library_missing && f.more.count("needed_by") == 0 && f.more.count("library") != 0; };
  for (const Fault& f : answer.faults)
    if (!absent(f) && f.reason != Reason::no_device && f.reason != Reason::driver_too_old && f.reason != Reason::driver_crashed && f.reason != Reason::driver_timeout) return false;
  return true;
}

}  // namespace

std::string kept_answer(const AskOptions& options, const DriverJob& job) {
  if (options.folder.empty() || !is_own(options.folder)) return "";
  const auto text = io::read_file(path_of(options, job), 2 * drivers::kAnswerLimit);
  const std::string head = head_of(options, job);
  if (!text || (*text).compare(0, head.size(), head) != 0) return "";
  const std::string rows = (*text).substr(head.size());
  return still_true(rows) ? rows : "";
}

void keep_answer(const AskOptions& options, const DriverAnswer& answer) {
  if (options.folder.empty() || !worth_keeping(answer)) return;
  std::error_code error;
  std::filesystem::create_directories(options.folder, error);
  if (is_own(options.folder)) (void)io::write_file(path_of(options, answer.job), head_of(options, answer.job) + answer.rows);  // kept where it can be; no fault where not
}

}  // namespace tenon::cli
