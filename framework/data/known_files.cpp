// Content of the published files, unpacked, so that a user learns whether the data is the real thing.
#include <tenon/data/idx.hpp>

namespace tenon::data {
namespace {

struct Known { const char* sha256; const char* name; };
constexpr Known kKnown[] = {
    {"ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db", "MNIST train images"},
    {"65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5", "MNIST train labels"},
    {"0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7", "MNIST test images"},
    {"ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2", "MNIST test labels"},
    {"c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888", "Fashion-MNIST train images"},
    {"bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9", "Fashion-MNIST train labels"},
    {"5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b", "Fashion-MNIST test images"},
    {"0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34", "Fashion-MNIST test labels"},
};

}  // namespace

std::string known_idx_file(const std::string& sha256) {
  for (const Known& known : kKnown)
    if (sha256 == known.sha256) return known.name;
  return "";
}

}  // namespace tenon::data
