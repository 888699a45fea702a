// The header as a small state machine over JSON events: no tree is built, depth is bounded by the grammar itself
//   { "__metadata__": {text: text}, name: {"dtype": text, "shape": [n...], "data_offsets": [n, n]} }
// and every object's keys are seen, so duplicates cannot hide.
#include <tenon/io/safetensors.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>
#include <tuple>

namespace tenon::io {
namespace {

constexpr size_t kMaxRank = 64;          // a longer shape is nonsense, and would cost memory
constexpr const char* kMetadata = "__metadata__";

Status bad(uint32_t number, const std::string& where, std::string what, std::string why, std::string fix) {
  return {file_error(number), where + ": " + std::move(what), std::move(why), std::move(fix), where};
}

class HeaderEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderEvents(const std::string& where) : where_(where) {}
  SafetensorsHeader header;
  Status status;

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("true or false"); }
  bool binary(binary_t&) override { return unexpected("binary"); }
  bool number_integer(number_integer_t value) override { return unexpected("the negative number " + std::to_string(value)); }
  bool number_float(number_float_t, const string_t& text) override { return unexpected("the number " + quote(text)); }

  bool number_unsigned(number_unsigned_t value) override {
    if (at_ != At::Shape && at_ != At::Offsets) return unexpected("a number");
    if (at_ == At::Offsets) {
      if (offsets_.size() == 2) return grammar("data_offsets holds more than two numbers");
      offsets_.push_back(value);
      return true;
    }
    if (entry_.shape.size() == kMaxRank) return grammar("shape has more than " + std::to_string(kMaxRank) + " dims");
    entry_.shape.push_back(value);
    return true;
  }

  bool string(string_t& text) override {
    if (at_ == At::MetadataValue) {
      header.metadata[key_] = text;
      at_ = At::Metadata;
      return true;
    }
    if (at_ != At::Dtype) return unexpected("a string");
    entry_.dtype = safetensors_dtype(text);
    at_ = At::Entry;
    return entry_.dtype != 0 || unknown_dtype(text);
  }

  bool key(string_t& text) override {
    key_ = text;
    if (at_ == At::Top) return top_key(text);
    if (at_ == At::Metadata) {
      if (!metadata_keys_.insert(text).second) return duplicate(text);
      at_ = At::MetadataValue;
      return true;
    }
    return entry_key(text);
  }

  bool start_object(size_t) override {
    switch (at_) {
      case At::Start: at_ = At::Top; return true;
      case At::MetadataOpen: at_ = At::Metadata; return true;
      case At::EntryOpen: at_ = At::Entry; return true;
      default: return unexpected("an object");
    }
  }

  bool end_object() override {
    if (at_ == At::Entry) {
      if (seen_ != 7) return grammar("tensor " + quote(entry_.name) + " lacks dtype, shape or data_offsets");
      header.tensors.push_back(std::move(entry_));
      at_ = At::Top;
    } else if (at_ == At::Metadata) {
      at_ = At::Top;
    } else {
      at_ = At::End;
    }
    return true;
  }

  bool start_array(size_t) override {
    if (at_ == At::ShapeOpen) { at_ = At::Shape; return true; }
    if (at_ == At::OffsetsOpen) { at_ = At::Offsets; return true; }
    return unexpected("an array");
  }

  bool end_array() override {
    if (at_ == At::Offsets) {
      if (offsets_.size() != 2) return grammar("data_offsets of " + quote(entry_.name) + " must hold two numbers");
      entry_.begin = offsets_[0], entry_.end = offsets_[1];
    }
    at_ = At::Entry;
    return true;
  }

  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    const std::string text = error.what();
    status = bad(12, where_, "the header is not valid JSON", "at byte " + std::to_string(position) + " of the header: " + quote(text, 160),
                 "save the file again; it is damaged or not a safetensors file");
    return false;
  }

 private:
  enum class At { Start, Top, MetadataOpen, Metadata, MetadataValue, EntryOpen, Entry, Dtype, ShapeOpen, Shape, OffsetsOpen, Offsets, End };

  bool top_key(const std::string& name) {
    if (!names_.insert(name).second) return duplicate(name);
    if (name == kMetadata) {
      at_ = At::MetadataOpen;
      return true;
    }
    entry_ = {};
    entry_.name = name;
    seen_ = 0;
    offsets_.clear();
    at_ = At::EntryOpen;
    return true;
  }

  bool entry_key(const std::string& name) {
    const int bit = name == "dtype" ? 1 : name == "shape" ? 2 : name == "data_offsets" ? 4 : 0;
    if (bit == 0) return grammar("tensor " + quote(entry_.name) + " has the unknown key " + quote(name));
    if (seen_ & bit) return duplicate(name);
    seen_ |= bit;
    at_ = bit == 1 ? At::Dtype : bit == 2 ? At::ShapeOpen : At::OffsetsOpen;
    return true;
  }

  bool unexpected(const std::string& found) {
    switch (at_) {
      case At::Start: return grammar("the header must be an object; it is " + found);
      case At::MetadataOpen: return grammar("__metadata__ must be an object; found " + found);
      case At::MetadataValue: return grammar("__metadata__ entry " + quote(key_) + " must be a string; found " + found);
      case At::EntryOpen: return grammar("tensor " + quote(key_) + " must be an object; found " + found);
      default: return grammar("tensor " + quote(entry_.name) + ", key " + quote(key_) + ": did not expect " + found);
    }
  }

  bool grammar(std::string why) {
    status = bad(12, where_, "the header is not what the format allows", std::move(why), "save the file again with a conforming writer");
    return false;
  }

  bool duplicate(const std::string& name) {
    status = bad(13, where_, "duplicate key in the header", quote(name) + " appears twice", "save the file again with distinct names");
    return false;
  }

  bool unknown_dtype(const std::string& text) {
    if (safetensors_dtype_known_but_unsupported(text))
      status = bad(18, where_, "dtype not supported", "tensor " + quote(entry_.name) + " has dtype " + quote(text) + ", which Tenon has no type for",
                   "convert it to F8_E4M3, F16 or F32 before saving");
    else
      status = bad(14, where_, "unknown dtype", "tensor " + quote(entry_.name) + " has dtype " + quote(text), "use F32, F16, BF16, I64, ... as the format names them");
    return false;
  }

  const std::string& where_;
  At at_ = At::Start;
  int seen_ = 0;
  std::string key_;
  SafetensorsEntry entry_;
  std::vector<uint64_t> offsets_;
  std::set<std::string> names_, metadata_keys_;
};

std::string range_text(const SafetensorsEntry& t) { return "[" + std::to_string(t.begin) + ", " + std::to_string(t.end) + ")"; }

Status check_size(const SafetensorsEntry& t, const std::string& where) {
  if (t.begin > t.end)
    return bad(15, where, "a tensor ends before it begins", quote(t.name) + " has data_offsets " + range_text(t), "save the file again");
  uint64_t need = 0;
  const bool fits = checked_size_bytes(t.shape, safetensors_element_bytes(t.dtype), &need);
  if (fits && need == t.size_bytes()) return {};
  return bad(15, where, "shape and byte range differ",
             quote(t.name) + " needs " + (fits ? std::to_string(need) : std::string("more than 2^64")) + " bytes by its shape; data_offsets " +
                 range_text(t) + " give " + std::to_string(t.size_bytes()),
             "save the file again");
}

// The ranges, in order, must tile [0, data_size) exactly.
Status check_tiling(std::vector<SafetensorsEntry>& tensors, uint64_t data_size, const std::string& where) {
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  uint64_t next = 0;
  for (const SafetensorsEntry& t : tensors) {
    Status size = check_size(t, where);
    if (!size.ok()) return size;
    if (t.begin != next)
      return bad(16, where, t.begin < next ? "two tensors overlap" : "a hole in the data",
                 quote(t.name) + " begins at byte " + std::to_string(t.begin) + "; the one before ends at " + std::to_string(next), "save the file again");
    next = t.end;
  }
  if (next == data_size) return {};
  return bad(17, where, next > data_size ? "the file is truncated" : "bytes left over at the end",
             "the header describes " + std::to_string(next) + " data bytes; the file has " + std::to_string(data_size),
             next > data_size ? "copy or download it again" : "save the file again");
}

}  // namespace

Result<SafetensorsHeader> parse_safetensors_header(std::string_view json, uint64_t data_size, const std::string& where) {
  if (json.empty() || json.front() != '{')
    return bad(12, where, "the header is not what the format allows", "it must begin with '{'", "check that this is a safetensors file");
  // The JSON parser takes a NUL for the end of the text and would ignore what follows.
  if (json.find('\0') != std::string_view::npos)
    return bad(12, where, "the header is not what the format allows", "it holds a NUL byte", "save the file again with a conforming writer");
  HeaderEvents events(where);
  if (!nlohmann::json::sax_parse(json.begin(), json.end(), &events)) return events.status;
  Status tiling = check_tiling(events.header.tensors, data_size, where);
  if (!tiling.ok()) return tiling;
  events.header.data_offset_bytes = 8 + json.size();
  return std::move(events.header);
}

}  // namespace tenon::io
