// SPDX-License-Identifier: Apache-2.0
//
// A task for each piece.

#include "engine/platform/checksum_in_pieces.h"

#include <algorithm>
#include <vector>

#include "engine/base/checksum.h"
#include "engine/base/int_math.h"
#include "engine/base/status_macros.h"
#include "engine/platform/thread_team.h"

namespace encore::inline v0_1::internal {

Result<uint64_t> ChecksumInPieces(const Executor& executor, std::span<const std::byte> bytes) {
  constexpr size_t kPiece = size_t{1} << 20;
  std::vector<uint64_t> pieces(DivCeil(bytes.size(), kPiece));
  ENCORE_RETURN_IF_ERROR(RunTeam(executor, [&](Team& team) {
    team.ForEach(pieces.size(), [&](size_t i, int /*thread*/) {
      const size_t begin = i * kPiece;
      pieces[i] = ChecksumOf(bytes.subspan(begin, std::min(kPiece, bytes.size() - begin)));
    });
  }));
  return ChecksumOf(std::as_bytes(std::span(pieces)));
}

}  // namespace encore::internal
