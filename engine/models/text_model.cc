// SPDX-License-Identifier: Apache-2.0
//
// A text model from its folder.

#include "engine/models/text_model.h"
