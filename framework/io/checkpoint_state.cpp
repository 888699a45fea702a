// state.json: strict reading (every key present, none unknown) and numbers that survive bit for bit.
#include <tenon/io/checkpoint.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <limits>
#include <stdexcept>

namespace tenon::io {
namespace {

using nlohmann::json;
constexpr uint64_t kStateVersion = 1;

// JSON has no NaN or infinity: those travel as text.
json from_double(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
  return v;
}

struct Refused : std::runtime_error { using std::runtime_error::runtime_error; };

double to_double(const json& j, const std::string& key) {
  if (j.is_number()) return j.get<double>();
  if (j == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (j == "inf") return std::numeric_limits<double>::infinity();
  if (j == "-inf") return -std::numeric_limits<double>::infinity();
  throw Refused("key " + quote(key) + " must be a number");
}

uint64_t to_counter(const json& j, const std::string& key) {
  if (!j.is_number_unsigned()) throw Refused("key " + quote(key) + " must be a whole number, 0 or more");
  return j.get<uint64_t>();
}

// Removes and returns a key: what remains at the end is unknown.
json take(json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end()) throw Refused(std::string("key \"") + key + "\" is missing");
  json value = std::move(*it);
  object.erase(it);
  return value;
}

json take_object(json& object, const char* key) {
  json value = take(object, key);
  if (!value.is_object()) throw Refused(std::string("key \"") + key + "\" must be an object");
  return value;
}

void nothing_left(const json& object) {
  if (!object.empty()) throw Refused("unknown key " + quote(object.begin().key()));
}

TrainingState decode(json root) {
  if (!root.is_object()) throw Refused("it is not an object");
  const uint64_t version = to_counter(take(root, "version"), "version");
  if (version != kStateVersion) throw Refused("it has version " + std::to_string(version) + "; this program reads " + std::to_string(kStateVersion));
  TrainingState s;
  s.step = to_counter(take(root, "step"), "step");
  s.epoch = to_counter(take(root, "epoch"), "epoch");
  json sampler = take_object(root, "sampler"), generator = take_object(root, "generator");
  s.sampler_seed = to_counter(take(sampler, "seed"), "sampler.seed");
  s.sampler_epoch = to_counter(take(sampler, "epoch"), "sampler.epoch");
  s.sampler_offset = to_counter(take(sampler, "offset"), "sampler.offset");
  s.generator_seed = to_counter(take(generator, "seed"), "generator.seed");
  s.generator_offset = to_counter(take(generator, "offset"), "generator.offset");
  nothing_left(sampler), nothing_left(generator);
  const json scalars = take_object(root, "scalars"), counters = take_object(root, "counters"), config = take(root, "config");
  for (const auto& [key, value] : scalars.items()) s.scalars[key] = to_double(value, key);
  for (const auto& [key, value] : counters.items()) s.counters[key] = to_counter(value, key);
  if (!config.is_string()) throw Refused("key \"config\" must be a string");
  s.config = config.get<std::string>();
  nothing_left(root);
  return s;
}

}  // namespace

std::string state_text(const TrainingState& s) {
  json scalars = json::object();
  for (const auto& [key, value] : s.scalars) scalars[key] = from_double(value);
  json root = {{"version", kStateVersion}, {"step", s.step}, {"epoch", s.epoch},
               {"sampler", {{"seed", s.sampler_seed}, {"epoch", s.sampler_epoch}, {"offset", s.sampler_offset}}},
               {"generator", {{"seed", s.generator_seed}, {"offset", s.generator_offset}}},
               {"scalars", scalars}, {"counters", s.counters}, {"config", s.config}};
  return root.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

Result<TrainingState> parse_state(const std::string& text, const std::string& where) {
  const auto refuse = [&](const std::string& why) {
    return Status{file_error(24), where + ": training state not understood", why, "resume from another checkpoint, or with the program that wrote it", where};
  };
  json root = json::parse(text, nullptr, false);
  if (root.is_discarded()) return refuse("it is not valid JSON");
  try {
    return decode(std::move(root));
  } catch (const Refused& e) {
    return refuse(e.what());
  }
}

Result<TrainingState> read_state(const std::string& path) {
  Result<std::string> text = read_file(path, 64 << 20, false);
  if (!text) return text.status();
  return parse_state(*text, path);
}

}  // namespace tenon::io
