// SPDX-License-Identifier: Apache-2.0
//
// Parsing of control group files.

#include "engine/platform/cgroup.h"

#include <charconv>
#include <cstddef>
#include <cstdint>

namespace encore::inline v0_1::internal {
namespace {

// Removes the part before the next separator from the front of *text and returns it; without one,
// all of it.
std::string_view TakeUntil(char separator, std::string_view* text) {
  const size_t end = text->find(separator);
  const std::string_view head = text->substr(0, end);
  text->remove_prefix(end == std::string_view::npos ? text->size() : end + 1);
  return head;
}

bool ListHas(std::string_view comma_separated, std::string_view name) {
  while (!comma_separated.empty()) {
    if (TakeUntil(',', &comma_separated) == name) return true;
  }
  return false;
}

// mountinfo writes space, tab, newline and backslash as a backslash and three octal digits.
std::string Unescape(std::string_view text) {
  const auto octal = [](char c) { return c >= '0' && c <= '7'; };
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && octal(text[i + 1]) && octal(text[i + 2]) &&
        octal(text[i + 3])) {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                               (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

// Where a hierarchy is mounted, and which of its groups the mount shows as its root.
struct Mount {
  bool v2;
  std::string root;
  std::string point;
};

// A line: "36 35 98:0 /root /mount/point options [optional ...] - fstype source super,options".
bool ParseMount(std::string_view line, Mount* mount) {
  const size_t dash = line.find(" - ");
  if (dash == std::string_view::npos) return false;
  std::string_view before = line.substr(0, dash);
  std::string_view after = line.substr(dash + 3);
  for (int i = 0; i < 3; ++i) TakeUntil(' ', &before);  // two numbers and the device
  mount->root = Unescape(TakeUntil(' ', &before));
  mount->point = Unescape(TakeUntil(' ', &before));
  const std::string_view type = TakeUntil(' ', &after);
  TakeUntil(' ', &after);  // the source
  mount->v2 = type == "cgroup2";
  return mount->v2 || (type == "cgroup" && ListHas(TakeUntil(' ', &after), "cpu"));
}

// The part of `group` below `root`: "" for the root itself and for groups outside of it.
std::string_view Below(std::string_view group, std::string_view root) {
  if (root != "/") {
    if (!group.starts_with(root)) return "";
    group.remove_prefix(root.size());
    if (!group.empty() && group[0] != '/') return "";  // "/ab" is not below "/a"
  }
  if (group.find("/..") != std::string_view::npos) return "";
  return group == "/" ? "" : group;
}

bool ParseNumber(std::string_view text, int64_t* value) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::vector<CgroupFolder> CpuQuotaFolders(std::string_view self_cgroup,
                                          std::string_view mountinfo) {
  std::vector<Mount> mounts;
  while (!mountinfo.empty()) {
    Mount mount;
    if (ParseMount(TakeUntil('\n', &mountinfo), &mount)) mounts.push_back(mount);
  }
  std::vector<CgroupFolder> folders;
  while (!self_cgroup.empty()) {
    // A line: "4:cpu,cpuacct:/group" in v1, "0::/group" in v2. A group's name may hold colons.
    std::string_view group = TakeUntil('\n', &self_cgroup);
    const std::string_view hierarchy = TakeUntil(':', &group);
    const std::string_view controllers = TakeUntil(':', &group);
    const bool v2 = hierarchy == "0" && controllers.empty();
    if (!v2 && !ListHas(controllers, "cpu")) continue;
    for (const Mount& mount : mounts) {
      if (mount.v2 != v2) continue;
      for (std::string_view below = Below(group, mount.root);;) {
        folders.push_back({v2, mount.point + std::string(below)});
        if (below.empty()) break;
        below = below.substr(0, below.rfind('/'));
      }
    }
  }
  return folders;
}

double ParseCpuMax(std::string_view cpu_max) {
  const std::string_view quota = TakeUntil(' ', &cpu_max);
  return ParseCfsQuota(quota, cpu_max);
}

double ParseCfsQuota(std::string_view quota_us, std::string_view period_us) {
  int64_t quota = 0;
  int64_t period = 0;
  if (!ParseNumber(quota_us, &quota) || !ParseNumber(period_us, &period) || quota <= 0 ||
      period <= 0)
    return 0;
  return static_cast<double>(quota) / static_cast<double>(period);
}

}  // namespace encore::internal
