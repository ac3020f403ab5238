"""From a point back to the label whose vector is nearest."""

from locole.decoders.argmax import ArgmaxDecoder
from locole.decoders.base import Decoder
from locole.decoders.candidates import CandidateDecoder
from locole.decoders.choose import DECODERS, choose_decoder, decode, recall
from locole.decoders.dense import DenseDecoder
from locole.decoders.exact_ranking import all_scores, near_labels
from locole.decoders.fft import FourierDecoder
from locole.decoders.fwht import WalshHadamardDecoder
from locole.decoders.gather import GatherDecoder
from locole.decoders.pursuit import pursue

__all__ = [
    "DECODERS",
    "ArgmaxDecoder",
    "CandidateDecoder",
    "Decoder",
    "DenseDecoder",
    "FourierDecoder",
    "GatherDecoder",
    "WalshHadamardDecoder",
    "all_scores",
    "choose_decoder",
    "decode",
    "near_labels",
    "pursue",
    "recall",
]
