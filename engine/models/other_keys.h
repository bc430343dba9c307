// SPDX-License-Identifier: Apache-2.0
//
// The keys of config.json that the model's family does not read.

#ifndef ENCORE_ENGINE_MODELS_OTHER_KEYS_H_
#define ENCORE_ENGINE_MODELS_OTHER_KEYS_H_

#include <string>
#include <vector>

#include "encore/status.h"
#include "encore/tokenizer.h"
#include "engine/io/json_members.h"
#include "engine/models/family.h"

namespace encore::inline v0_1::internal {

// Each key that was not read is one of four:
//   harmless in all families: passed over
//   one that has a single value that encore computes: kUnsupported with another
//   one that another family reads, and that may have been meant: kInvalidArgument, or with
//   ignore_unknown a decision
//   any other: a decision, as transformers does not look at keys that a family's class has not
Status CheckOtherKeys(const JsonValue& object, JsonMembers* config, bool ignore_unknown,
                      std::vector<Decision>* decisions);

// kUnsupported where a key that has a single value has another.
Status CheckOnly(const std::string& where, const OnlyValue& only, const JsonValue& value);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_MODELS_OTHER_KEYS_H_
