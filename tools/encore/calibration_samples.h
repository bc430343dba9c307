// SPDX-License-Identifier: Apache-2.0
//
// Samples for a calibration: tensors or texts from files. Not here: what is measured
// (calibration.h).

#ifndef ENCORE_TOOLS_ENCORE_CALIBRATION_SAMPLES_H_
#define ENCORE_TOOLS_ENCORE_CALIBRATION_SAMPLES_H_

#include <string>

#include "tools/encore/calibration.h"
#include "tools/encore/weights_folder.h"

namespace encore::tool {

// A file as of `encore run --input`. Throws Failure.
void AddSampleTensors(const std::string& path, Calibration* calibration);

// Texts, one a line, through the tokenizer and the embeddings of the folder at `path`, cut at the
// length that the model is given. Throws Failure.
void AddSampleTexts(const std::string& texts, const std::string& path, WeightsFolder* folder,
                    Calibration* calibration);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_CALIBRATION_SAMPLES_H_
