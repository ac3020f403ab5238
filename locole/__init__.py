"""Classification with very many labels by low-coherence label embeddings."""
