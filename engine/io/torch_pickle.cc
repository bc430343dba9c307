// SPDX-License-Identifier: Apache-2.0
//
// A stack machine for the opcodes of pickle's protocol 2 that torch.save writes of a state_dict
// (CPython's pickletools says what each does, torch._utils what the names mean). Values are
// kept in a list and never followed deeper than a tensor's own, so that values which contain
// themselves do no harm.

#include "engine/io/torch_pickle.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <utility>

#include "engine/base/int_math.h"
#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"

namespace encore::inline v0_1::internal {
namespace {

enum class PickleKind : uint8_t {
  kMark,
  kNumber,
  kBool,
  kText,
  kTuple,
  kDict,
  kOrderedDictClass,
  kRebuildTensor,
  kStorageClass,
  kStorage,
  kTensor,
};

struct PickleValue {
  PickleKind kind = PickleKind::kMark;
  int64_t number = 0;
  std::string_view text = {};      // of the pickle, and of a storage its name
  std::vector<size_t> items = {};  // of a tuple; of a dict keys and values in turn
  DType dtype = DType::kF32;       // of a storage and its class
  std::optional<PickledTensor> tensor = {};
};

struct PickleName {
  std::string_view text;
  PickleKind kind;
  DType dtype = DType::kF32;
};
constexpr std::array<PickleName, 5> kPickleNames = {{
    {"collections OrderedDict", PickleKind::kOrderedDictClass},
    {"torch._utils _rebuild_tensor_v2", PickleKind::kRebuildTensor},
    {"torch FloatStorage", PickleKind::kStorageClass, DType::kF32},
    {"torch HalfStorage", PickleKind::kStorageClass, DType::kF16},
    {"torch BFloat16Storage", PickleKind::kStorageClass, DType::kBF16},
}};

class PickleMachine {
 public:
  explicit PickleMachine(std::string_view pickle) : pickle_(pickle) {}

  Result<std::vector<PickledTensor>> Run() {
    if (pickle_.size() > kMaxPickleBytes) {
      return Refuse("found " + std::to_string(pickle_.size()) + " bytes; wanted at most " +
                    std::to_string(kMaxPickleBytes));
    }
    if (!pickle_.starts_with("\x80\x02")) {
      return Refuse("found another start; wanted protocol 2");
    }
    at_ = 2;
    while (at_ < pickle_.size()) {
      const size_t place = at_;
      const char opcode = pickle_[at_++];
      if (opcode == '.') return Finish();
      if (!Step(opcode)) {
        if (!found_.empty()) return Refuse("found " + found_);
        char text[64];
        std::snprintf(text, sizeof(text), "found opcode 0x%02x at byte %zu",
                      static_cast<unsigned>(static_cast<unsigned char>(opcode)), place);
        return Refuse(text);
      }
    }
    return Refuse("found no end");
  }

 private:
  static Status Refuse(const std::string& found) {
    return Status(ErrorCode::kUnsupported,
                  found +
                      "; wanted only what torch.save writes of a dictionary of tensors in "
                      "f32, f16 or bf16");
  }

  // ---- Reading. False: the pickle ends before.
  bool Take(size_t count, std::string_view* bytes) {
    if (pickle_.size() - at_ < count) return false;
    *bytes = pickle_.substr(at_, count);
    at_ += count;
    return true;
  }
  bool TakeNumber(size_t bytes, uint32_t* number) {
    std::string_view text;
    if (!Take(bytes, &text)) return false;
    *number = 0;
    for (size_t i = bytes; i-- > 0;) {
      *number = *number << 8 | static_cast<unsigned char>(text[i]);
    }
    return true;
  }
  bool TakeLine(std::string_view* line) {
    const size_t end = pickle_.find('\n', at_);
    if (end == std::string_view::npos) return false;
    *line = pickle_.substr(at_, end - at_);
    at_ = end + 1;
    return true;
  }

  // ---- The stack, which has indices of values.
  bool Push(PickleValue value) {
    stack_.push_back(values_.size());
    values_.push_back(std::move(value));
    return true;
  }
  bool PushNumber(int64_t number, PickleKind kind = PickleKind::kNumber) {
    return Push({.kind = kind, .number = number});
  }
  // The value `depth` below the top; null if there is none or its kind is another.
  PickleValue* Top(PickleKind kind, size_t depth = 0) {
    if (stack_.size() <= depth) return nullptr;
    PickleValue& value = values_[stack_[stack_.size() - 1 - depth]];
    return value.kind == kind ? &value : nullptr;
  }
  bool PushTuple(size_t count) {
    if (stack_.size() < count) return false;
    const auto begin = stack_.end() - static_cast<ptrdiff_t>(count);
    PickleValue tuple{.kind = PickleKind::kTuple, .items = {begin, stack_.end()}};
    for (const size_t item : tuple.items) {
      if (values_[item].kind == PickleKind::kMark) return false;
    }
    stack_.erase(begin, stack_.end());
    return Push(std::move(tuple));
  }
  // The number of values above the last mark.
  std::optional<size_t> AboveMark() const {
    for (size_t i = stack_.size(); i-- > 0;) {
      if (values_[stack_[i]].kind == PickleKind::kMark) return stack_.size() - 1 - i;
    }
    return {};
  }
  // Puts the top `count` values, keys and values in turn, into the dict below `skipped` more.
  bool SetItems(size_t count, size_t skipped) {
    if (count % 2 != 0 || stack_.size() < count) return false;
    PickleValue* const dict = Top(PickleKind::kDict, count + skipped);
    if (dict == nullptr) return false;
    const auto begin = stack_.end() - static_cast<ptrdiff_t>(count);
    dict->items.insert(dict->items.end(), begin, stack_.end());
    stack_.erase(begin - static_cast<ptrdiff_t>(skipped), stack_.end());
    return true;
  }

  bool Step(char opcode) {
    uint32_t number = 0;
    std::string_view text;
    switch (opcode) {
      case '(':  // MARK
        return Push({});
      case ')':  // EMPTY_TUPLE
        return PushTuple(0);
      case '\x85':  // TUPLE1
        return PushTuple(1);
      case '\x86':  // TUPLE2
        return PushTuple(2);
      case '\x87':  // TUPLE3
        return PushTuple(3);
      case 't': {  // TUPLE
        const std::optional<size_t> count = AboveMark();
        if (!count || !PushTuple(*count)) return false;
        stack_.erase(stack_.end() - 2);
        return true;
      }
      case '}':  // EMPTY_DICT
        return Push({.kind = PickleKind::kDict});
      case 's':  // SETITEM
        return SetItems(2, 0);
      case 'u': {  // SETITEMS
        const std::optional<size_t> count = AboveMark();
        return count && SetItems(*count, 1);
      }
      case 'b':  // BUILD: of an ordered dictionary attributes, which say nothing of tensors
        if (!Top(PickleKind::kDict) || !Top(PickleKind::kDict, 1)) return false;
        stack_.pop_back();
        return true;
      case 'K':  // BININT1
        return TakeNumber(1, &number) && PushNumber(number);
      case 'M':  // BININT2
        return TakeNumber(2, &number) && PushNumber(number);
      case 'J':  // BININT
        return TakeNumber(4, &number) && PushNumber(static_cast<int32_t>(number));
      case '\x88':  // NEWTRUE
      case '\x89':  // NEWFALSE
        return PushNumber(opcode == '\x88' ? 1 : 0, PickleKind::kBool);
      case 'X':  // BINUNICODE
        return TakeNumber(4, &number) && Take(number, &text) &&
               Push({.kind = PickleKind::kText, .text = text});
      case 'q':  // BINPUT
        return TakeNumber(1, &number) && Memorize(number);
      case 'r':  // LONG_BINPUT
        return TakeNumber(4, &number) && Memorize(number);
      case 'h':  // BINGET
        return TakeNumber(1, &number) && Recall(number);
      case 'j':  // LONG_BINGET
        return TakeNumber(4, &number) && Recall(number);
      case 'c':  // GLOBAL
        return PushName();
      case 'Q':  // BINPERSID
        return MakeStorage();
      case 'R':  // REDUCE
        return Call();
      default:
        return false;
    }
  }

  bool Memorize(uint32_t number) {
    if (stack_.empty() || values_[stack_.back()].kind == PickleKind::kMark) return false;
    memory_[number] = stack_.back();
    return true;
  }
  bool Recall(uint32_t number) {
    const auto found = memory_.find(number);
    if (found == memory_.end()) return false;
    stack_.push_back(found->second);
    return true;
  }

  bool PushName() {
    std::string_view module;
    std::string_view name;
    if (!TakeLine(&module) || !TakeLine(&name)) return false;
    const std::string both = std::string(module) + " " + std::string(name);
    for (const PickleName& known : kPickleNames) {
      if (known.text == both) return Push({.kind = known.kind, .dtype = known.dtype});
    }
    found_ = "the name " + Quoted(both);
    return false;
  }

  // ("storage", class, name, device, elements) becomes a storage.
  bool MakeStorage() {
    const PickleValue* const tuple = Top(PickleKind::kTuple);
    if (tuple == nullptr || tuple->items.size() != 5) return false;
    const PickleValue& tag = values_[tuple->items[0]];
    const PickleValue& type = values_[tuple->items[1]];
    const PickleValue& name = values_[tuple->items[2]];
    const PickleValue& device = values_[tuple->items[3]];
    const PickleValue& elements = values_[tuple->items[4]];
    const bool fits = tag.kind == PickleKind::kText && tag.text == "storage" &&
                      type.kind == PickleKind::kStorageClass && name.kind == PickleKind::kText &&
                      device.kind == PickleKind::kText && elements.kind == PickleKind::kNumber &&
                      elements.number >= 0;
    if (!fits) return false;
    PickleValue storage{.kind = PickleKind::kStorage,
                        .number = elements.number,
                        .text = name.text,
                        .dtype = type.dtype};
    stack_.pop_back();
    return Push(std::move(storage));
  }

  bool Call() {
    const PickleValue* const arguments = Top(PickleKind::kTuple);
    if (arguments == nullptr) return false;
    PickleValue made;
    if (Top(PickleKind::kOrderedDictClass, 1) != nullptr && arguments->items.empty()) {
      made.kind = PickleKind::kDict;
    } else if (Top(PickleKind::kRebuildTensor, 1) != nullptr) {
      made.kind = PickleKind::kTensor;
      made.tensor = MakeTensor(arguments->items);
      if (!made.tensor) return false;
    } else {
      return false;
    }
    stack_.resize(stack_.size() - 2);
    return Push(std::move(made));
  }

  std::optional<std::vector<size_t>> Sizes(size_t index) const {
    const PickleValue& tuple = values_[index];
    if (tuple.kind != PickleKind::kTuple) return {};
    std::vector<size_t> sizes;
    for (const size_t item : tuple.items) {
      const PickleValue& value = values_[item];
      if (value.kind != PickleKind::kNumber || value.number < 0) return {};
      sizes.push_back(static_cast<size_t>(value.number));
    }
    return sizes;
  }

  // (storage, offset, shape, strides, requires_grad, hooks)
  std::optional<PickledTensor> MakeTensor(const std::vector<size_t>& arguments) {
    if (arguments.size() != 6) return {};
    const PickleValue& storage = values_[arguments[0]];
    const PickleValue& offset = values_[arguments[1]];
    std::optional<std::vector<size_t>> shape = Sizes(arguments[2]);
    const std::optional<std::vector<size_t>> strides = Sizes(arguments[3]);
    const PickleValue& hooks = values_[arguments[5]];
    const bool fits = storage.kind == PickleKind::kStorage && offset.kind == PickleKind::kNumber &&
                      offset.number >= 0 && shape && strides && strides->size() == shape->size() &&
                      values_[arguments[4]].kind == PickleKind::kBool &&
                      hooks.kind == PickleKind::kDict && hooks.items.empty();
    if (!fits) return {};
    if (shape->size() > kMaxPickledRank) {
      found_ = "a tensor of " + std::to_string(shape->size()) + " dimensions";
      return {};
    }
    size_t step = 1;
    for (size_t i = shape->size(); i-- > 0;) {
      const bool is_dense = (*shape)[i] <= 1 || (*strides)[i] == step;
      if (!is_dense || !CheckedMul(step, (*shape)[i], &step)) {
        found_ = "a tensor whose rows do not follow each other";
        return {};
      }
    }
    const auto elements = static_cast<size_t>(storage.number);
    const auto first = static_cast<size_t>(offset.number);
    if (first > elements || step > elements - first) {
      found_ = "a tensor beyond its storage of " + std::to_string(elements) + " elements";
      return {};
    }
    return PickledTensor{.name = {},
                         .storage = std::string(storage.text),
                         .storage_elements = elements,
                         .offset = first,
                         .dtype = storage.dtype,
                         .shape = *std::move(shape)};
  }

  // The one value that is left is a dictionary of tensors by name.
  Result<std::vector<PickledTensor>> Finish() {
    const PickleValue* const dict = Top(PickleKind::kDict);
    if (dict == nullptr || stack_.size() != 1 || at_ != pickle_.size()) {
      return Refuse("found another value at the end");
    }
    std::vector<PickledTensor> tensors;
    for (size_t i = 0; i < dict->items.size(); i += 2) {
      const PickleValue& key = values_[dict->items[i]];
      const PickleValue& value = values_[dict->items[i + 1]];
      if (key.kind != PickleKind::kText || value.kind != PickleKind::kTensor) {
        return Refuse("found a member that is no tensor by a name");
      }
      const bool is_new = std::none_of(tensors.begin(), tensors.end(),
                                       [&](const auto& known) { return known.name == key.text; });
      if (!is_new) return Refuse("found tensor " + Quoted(key.text) + " twice");
      if (tensors.size() == kMaxPickledTensors) return Refuse("found more tensors than a head has");
      tensors.push_back(*value.tensor);
      tensors.back().name = key.text;
    }
    return tensors;
  }

  const std::string_view pickle_;
  size_t at_ = 0;
  std::vector<PickleValue> values_;
  std::vector<size_t> stack_;
  std::map<uint32_t, size_t> memory_;
  std::string found_;  // what is wrong, where an opcode's number would not say it
};

}  // namespace

Result<std::vector<PickledTensor>> ReadPickledTensors(std::string_view pickle) {
  return PickleMachine(pickle).Run();
}

}  // namespace encore::internal
