"""The pages of the labeling tool and the server that gives them out."""
