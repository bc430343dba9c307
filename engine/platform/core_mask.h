// SPDX-License-Identifier: Apache-2.0
//
// Sets of cores as the kernel's affinity masks have them, however many cores it knows.

#ifndef ENCORE_ENGINE_PLATFORM_CORE_MASK_H_
#define ENCORE_ENGINE_PLATFORM_CORE_MASK_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <sched.h>
#endif

namespace encore::inline v0_1::internal {

// Movable. Up to 1024 cores take no memory but its own.
class CoreMask {
 public:
  using Word = unsigned long;  // the kernel's

  // The mask that ask(size_t bytes, Word* words) fills in. It gives 0 or an error number: EINVAL
  // says that the kernel's own masks are longer, but not how long they are. They grow here to 2^20
  // cores. No core after another error, and where there is no memory.
  template <typename Ask>
  static CoreMask Read(const Ask& ask) {
    CoreMask mask;
    int error = ask(mask.bytes(), mask.memory());
    while (error == EINVAL && mask.size() < kMost / kWordBits && mask.MakeRoom(2 * mask.size())) {
      error = ask(mask.bytes(), mask.memory());
    }
    return error == 0 ? std::move(mask) : CoreMask();
  }
  // What a thread may run on, by its number in the system; 0 is the calling one, and the only one
  // that Windows is asked for. No core if the system does not say.
  static CoreMask OfThread(int thread);
  static CoreMask OfThisThread() { return OfThread(0); }

  size_t count() const {
    size_t count = 0;
    for (size_t i = 0; i < size(); ++i) count += static_cast<size_t>(std::popcount(words()[i]));
    return count;
  }
  bool Has(int core) const {
    const size_t c = Index(core);
    return c / kWordBits < size() && (words()[c / kWordBits] >> c % kWordBits & 1) != 0;
  }
  std::vector<int> cores() const {  // in ascending order
    std::vector<int> cores;
    const size_t count = this->count();
    for (int core = 0; cores.size() < count; ++core) {
      if (Has(core)) cores.push_back(core);
    }
    return cores;
  }
  // The first core, or 0 if there is none.
  size_t first() const {
    size_t i = 0;
    while (i < size() && words()[i] == 0) ++i;
    return i == size() ? 0 : i * kWordBits + static_cast<size_t>(std::countr_zero(words()[i]));
  }
  // False if there is no memory for that core, or none so large.
  [[nodiscard]] bool Add(int core) {
    const size_t c = Index(core);
    if (c >= kMost || !MakeRoom(c / kWordBits + 1)) return false;
    memory()[c / kWordBits] |= Word{1} << c % kWordBits;
    return true;
  }
  void Remove(int core) {
    if (Has(core)) memory()[Index(core) / kWordBits] &= ~(Word{1} << Index(core) % kWordBits);
  }
  bool operator==(const CoreMask& other) const {
    const size_t common = std::min(size(), other.size());
    const auto none = [&](const CoreMask& mask) {
      return std::all_of(mask.words() + common, mask.words() + mask.size(),
                         [](Word word) { return word == 0; });
    };
    return std::equal(words(), words() + common, other.words()) && none(*this) && none(other);
  }

  // For the system's calls.
  size_t bytes() const { return size() * sizeof(Word); }
  const Word* words() const { return many_ ? many_.get() : few_.data(); }

 private:
  static constexpr size_t kWordBits = 8 * sizeof(Word);
  static constexpr size_t kMost = size_t{1} << 20;

  static size_t Index(int core) { return core < 0 ? kMost : static_cast<size_t>(core); }
  size_t size() const { return many_ ? many_size_ : few_.size(); }
  Word* memory() { return many_ ? many_.get() : few_.data(); }
  bool MakeRoom(size_t size_wanted) {
    if (size_wanted <= size()) return true;
    std::unique_ptr<Word[]> more(new (std::nothrow) Word[size_wanted]());
    if (!more) return false;
    std::copy_n(words(), size(), more.get());
    many_ = std::move(more);
    many_size_ = size_wanted;
    return true;
  }

  std::array<Word, 1024 / kWordBits> few_ = {};
  std::unique_ptr<Word[]> many_;  // in place of few_
  size_t many_size_ = 0;
};

#if defined(__linux__)
// As the C library calls these words.
inline cpu_set_t* SystemMask(CoreMask::Word* words) { return reinterpret_cast<cpu_set_t*>(words); }
inline const cpu_set_t* SystemMask(const CoreMask::Word* words) {
  return reinterpret_cast<const cpu_set_t*>(words);
}
#endif

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_PLATFORM_CORE_MASK_H_
